"""lit's shell tests, with the processor time that each of them takes.

Elapsed times depend on what else a machine does; user and system times of a test's
processes hardly do. They are in lit's results (`-o FILE`) as the metric `cpu`, in seconds.
"""

import resource

import lit.Test
import lit.formats


def children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class ShTest(lit.formats.ShTest):
    def execute(self, test, lit_config):
        # A worker of lit runs one test at a time, and waits for what it starts.
        before = children()
        result = super().execute(test, lit_config)
        result.addMetric("cpu", lit.Test.RealMetricValue(children() - before))
        return result
