"""CPU: Programs as LLVM IR, compiled in process and run on a native thread pool."""
