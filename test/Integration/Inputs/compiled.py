"""Functions on arrays by name, as varlen.run takes them, that are compiled once for all
their calls."""

import varlen


def function(text, **options):
    """The only function of a module, called with arrays by name and a number of threads.
    Its options are those of varlen.compile; like varlen.run it takes whole arrays."""
    compiled = varlen.compile(text, **{"strided": False, **options})[None]
    names = [result.name for result in compiled.results]

    def run(inputs, threads=None):
        arguments = [inputs[argument.name] for argument in compiled.arguments]
        results = compiled(*arguments, num_threads=threads)
        return dict(zip(names, results if isinstance(results, tuple) else (results,)))

    return run
