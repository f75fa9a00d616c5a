"""Megatron-LM and what is built on it: Megatron-Bridge, Megatron-DeepSpeed, NeMo."""
