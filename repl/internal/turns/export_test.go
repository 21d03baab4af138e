package turns

// WriteFeedback writes the message that tells a model what became of its code.
var WriteFeedback = writeFeedback
