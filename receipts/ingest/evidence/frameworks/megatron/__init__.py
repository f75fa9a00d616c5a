"""Megatron-LM, Megatron-Bridge, Megatron-DeepSpeed, and the golden values of their tests."""
