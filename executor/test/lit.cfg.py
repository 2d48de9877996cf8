# Runs with `lit -v executor/test`, as the tests in test/ do, whose configuration this is.

import os

here = os.path.dirname(os.path.abspath(__file__))
lit_config.load_config(config, os.path.join(here, "..", "..", "test", "lit.cfg.py"))
config.name = "executor"
config.test_source_root = here
config.test_exec_root = os.path.join(os.path.dirname(config.test_exec_root), "executor-test")
