// Package correct makes an output, judges it, and corrects it, until it is good enough or the
// attempts are used up.
//
// It provides three actions for workflows, see [Actions]: reflection.loop is the whole cycle,
// reflection.evaluate only judges and reflection.correct only corrects. [Loop], [Evaluate] and
// [Correct] do the same from Go.
//
// In this package, a generator makes an output, an evaluator gives a [Verdict] on it, and
// a corrector makes the next output from the last one and its errors. An [Attempt] is one
// output with its verdict; attempts are counted from 1.
//
// # What an evaluator cannot do
//
// An output passes only if its verdict is positive. A judge with an unreadable reply is asked
// again; if the next replies are unreadable, too, the attempt has failed. An attempt whose code
// raises, takes too long, or ends its interpreter has also failed.
package correct
