package reflexion

// Merge merges several judges' critiques into one.
var Merge = mergeCritiques

// WithDefaults completes a configuration.
var WithDefaults = Config.withDefaults
