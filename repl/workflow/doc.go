// Package workflow runs files that connect actions and code. A file is YAML with a list of nodes,
// which run one after another over a shared state.
//
// [Parse] reads such a file as a [File]. A node either uses an [Action], with parameters,
// or runs Python, the body of a function of the state. String parameters are templates
// over the state. [File.Check] reports problems by line and column before anything runs;
// [File.Run] runs the file. Every file can use llm.call and the actions reflection.loop,
// reflection.evaluate and reflection.correct; [Parse] adds more.
//
// # Trust
//
// A file is untrusted, and so is its state after models and code have changed it. Its size,
// depth and number of parts are bounded, aliases included. Templates are rendered in a jail, and
// Python runs in a sandbox that the router chooses. A file can ask only models that its user
// named, within one budget. It cannot open files.
package workflow
