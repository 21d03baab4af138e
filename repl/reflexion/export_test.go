package reflexion

// Merge makes one critique of several judges'.
var Merge = mergeCritiques

// WithDefaults completes a configuration.
var WithDefaults = Config.withDefaults
