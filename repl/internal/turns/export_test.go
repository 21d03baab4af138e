package turns

// WriteFeedback writes the message that reports the outcome of its code to a model.
var WriteFeedback = writeFeedback
