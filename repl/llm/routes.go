package llm

// Routes says which model a run asks at which depth. Loops at depth 0 are the
// root's; what they call, loops and leaves alike, is one deeper.
type Routes struct {
	names  []string
	models []Model
}

// Routes resolves the models of a run by depth: the first is for depth 0, the
// last for its depth and all below. An empty name repeats the one before it.
// The seed's sub_llm_model_large and sub_llm_model_small are depths 0 and 1.
// The error is that of the first name that cannot be resolved.
func (r *Registry) Routes(byDepth ...string) (Routes, error) {
	var routes Routes
	for i, name := range byDepth {
		if name == "" && i > 0 {
			name = routes.names[i-1]
		}
		model, err := r.Resolve(name)
		if err != nil {
			return Routes{}, err
		}
		routes.names = append(routes.names, name)
		routes.models = append(routes.models, model)
	}
	if len(routes.models) == 0 {
		return Routes{}, &Error{Kind: ErrUnknownName, Message: "no model is given for the root"}
	}
	return routes, nil
}

// At returns the model for a depth.
func (r Routes) At(depth int) Model {
	return r.models[max(0, min(depth, len(r.models)-1))]
}

// Find returns the model that a snippet names: as the caller did, in full, or
// by the provider's name for it. Models that are not part of the run are not
// found, so that a snippet cannot choose what the caller pays for.
func (r Routes) Find(name string) (Model, bool) {
	for i, model := range r.models {
		if name == r.names[i] || name == model.Name || name == model.ID {
			return model, true
		}
	}
	return Model{}, false
}
