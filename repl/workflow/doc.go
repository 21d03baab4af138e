// Package workflow runs files that string actions and code together: YAML with a
// list of nodes, which run one after the other over one state.
//
// A [File] is what [Parse] makes of such a file. A node either uses an [Action],
// with parameters, or runs Python, the body of a function that finds the state.
// Texts among the parameters are templates over the state. [File.Check] finds
// what is wrong with a file, by line and column, before anything runs; [File.Run] runs
// it. Every file can use llm.call and the actions reflection.loop, reflection.evaluate
// and reflection.correct; an embedder adds more by [Config].
//
// # Trust
//
// A file is hostile, and so is all that models and code make of its state. It is
// bounded in size, depth and number of parts; aliases are followed within those
// bounds; templates are rendered in a jail; Python runs where the router puts it;
// it asks the models that its user named, within one budget; it opens no file.
package workflow
