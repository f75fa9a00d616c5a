"""NVIDIA's tools: nvidia-smi, Nsight Systems, Transformer Engine, DLLogger."""
