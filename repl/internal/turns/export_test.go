package turns

// WriteFeedback writes the message that reports the outcome of a model's code.
var WriteFeedback = writeFeedback
