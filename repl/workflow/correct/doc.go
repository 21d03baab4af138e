// Package reflection makes something, judges it, and has it corrected, until it is
// good enough or the tries are used up.
//
// There are three actions for package workflow, see [Actions]: reflection.loop is
// the whole cycle, reflection.evaluate its judgement and reflection.correct its
// correction alone. [Loop], [Evaluate] and [Correct] are the same from Go.
//
// The words of this package: a generator makes an output, an evaluator gives a
// [Verdict] on it, a corrector makes another output of it and of its errors. An
// [Attempt] is one output with its verdict; attempts are counted from 1.
//
// # What an evaluator cannot do
//
// Only a verdict that says so lets an output pass. A judge whose reply cannot be
// read is asked again and then counts as a failed attempt, and so does code that
// raises, takes too long, or ends its interpreter.
package correct
