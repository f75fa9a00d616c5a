"""A producer of the tests' own, so that the kernel's tests of ingesting need no folder of `receipts.readers`."""
