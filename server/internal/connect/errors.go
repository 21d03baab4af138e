package connect

import (
	"errors"
	"net/http"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// details are the data of an error.
type details struct {
	// Kind identifies the error for programs.
	Kind     string           `json:"kind"`
	Refusals []router.Refusal `json:"refusals,omitempty"`
	Effects  tiers.Effects    `json:"effects,omitempty"`
	Lost     *tiers.Loss      `json:"lost,omitempty"`
}

// These are the kinds of errors.
const (
	kindInvalid        = "invalid"
	kindUnknownSession = "unknown_session"
	kindInUse          = "in_use"
	kindBusy           = "busy"
	kindNoTier         = "no_tier"
	kindInterrupted    = "interrupted"
	kindBroken         = "broken"
	kindClosed         = "closed"
	kindFailed         = "failed"
)

// invalid returns an error for invalid parameters.
func invalid(format string, args ...any) error {
	return jsonrpc.NewError(jsonrpc.CodeInvalidParams, details{Kind: kindInvalid}, format, args...)
}

// describeError converts an error to its wire format. A nil error stays nil.
func describeError(err error) error {
	var known *jsonrpc.Error
	if err == nil || errors.As(err, &known) {
		return err
	}

	d := details{Kind: kindFailed}
	var broken *tiers.BrokenError
	if errors.As(err, &broken) {
		d = details{Kind: kindBroken, Effects: broken.Effects, Lost: results.DescribeLoss(broken.Lost)}
	}
	var answer *problem.Error
	if errors.As(err, &answer) {
		d.Kind = kindOf(answer)
	}
	var refused *router.NoTierError
	if errors.As(err, &refused) {
		d = details{Kind: kindNoTier, Refusals: refused.Refusals, Effects: refused.Effects}
	}
	for _, one := range []struct {
		is   error
		kind string
	}{
		{errInterrupted, kindInterrupted},
		{rlm.ErrInUse, kindInUse},
		{rlm.ErrBusy, kindBusy},
		{rlm.ErrNoTier, kindNoTier},
		{rlm.ErrClosed, kindClosed},
	} {
		if errors.Is(err, one.is) {
			d.Kind = one.kind
			break
		}
	}
	return jsonrpc.NewError(jsonrpc.CodeServer, d, "%v", err)
}

// kindOf returns the kind of a server error.
func kindOf(e *problem.Error) string {
	switch e.Status {
	case http.StatusNotFound:
		return kindUnknownSession
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return kindBusy
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return kindInvalid
	case http.StatusConflict:
		if e.Code == kindInUse || e.Code == kindInterrupted {
			return e.Code
		}
		return kindInvalid
	}
	return kindFailed
}
