"""What a claim says, as values that rules read: the sentence, its bound, and the mechanism that it credits."""
