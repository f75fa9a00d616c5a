"""What every Python process below ``receipts record`` runs before any line of the job: clock and recorder are armed.

PYTHONPATH names this folder, which holds nothing else. It leaves `sys.path` at once, and a ``sitecustomize`` that it
hides runs as it would have. The recorder comes with the launcher: the job's environment need not have it. Where
RECEIPTS_SIGHT_REPORT names a folder, each process says there that it was armed, and at its end what it had imported.

Older interpreters read this file too, and are not armed.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FRAMEWORKS = ("torch", "jax", "torch_xla")


def report(text: str) -> None:
    """Say something of this process to the launcher."""
    folder = os.environ.get("RECEIPTS_SIGHT_REPORT")
    if folder:
        try:
            with open(os.path.join(folder, f"armed-{os.getpid()}"), "w") as stream:
                stream.write(text)
        except OSError:
            pass


def version() -> str:
    """The interpreter's version."""
    return "{}.{}.{}".format(*sys.version_info[:3])


def arm() -> None:
    """Bind the clock, and wait for a framework. The package is the launcher's, found without a path of its own."""
    if sys.version_info < (3, 11):  # noqa: UP036 # the job's interpreter may be another than the launcher's
        report(f"python {version()}")
        return
    finder = sys.modules["_frozen_importlib_external"]
    if "receipts" not in sys.modules:
        package = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
        init = os.path.join(package, "__init__.py")
        spec = finder.spec_from_file_location("receipts", init, submodule_search_locations=[package])
        module = sys.modules["_frozen_importlib"].module_from_spec(spec)
        sys.modules["receipts"] = module
        spec.loader.exec_module(module)
    import atexit
    from importlib import import_module

    import_module("receipts.emit.clock")  # its functions are taken now
    import_module("receipts.emit.sight.arm").arm()
    process = os.getpid()
    report(f"armed {version()}")

    def ended() -> None:
        if os.getpid() == process:
            names = [name for name in FRAMEWORKS if name in sys.modules]
            report(" ".join(["armed", version(), *names]))

    atexit.register(ended)


def hidden() -> None:
    """Run the ``sitecustomize`` that this one hides, under its own name."""
    finder = sys.modules["_frozen_importlib_external"].PathFinder
    spec = finder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = sys.modules["_frozen_importlib"].module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


sys.path[:] = [item for item in sys.path if os.path.abspath(item or os.curdir) != HERE]
if os.environ.get("RECEIPTS_SIGHT") != "0":
    try:
        arm()
    except Exception as error:
        sys.stderr.write(f"receipts: this process is not recorded: {type(error).__name__}: {error}\n")
hidden()
