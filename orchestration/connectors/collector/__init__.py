"""The collector: it takes events that devices push, and stores them before it acknowledges them."""
