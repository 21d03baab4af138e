package reflect

// DefaultPromptTemplate is the first message of a reflection.
var DefaultPromptTemplate = defaultPromptTemplate

// PromptVariables are the names that a prompt template has in braces.
var PromptVariables = promptVariables
