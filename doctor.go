package rlm

import (
	"context"
	"runtime"

	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
)

// Diagnosis describes the tiers of this machine and the jail that it supports.
type Diagnosis struct {
	// System is the operating system and the processor's architecture.
	System string `json:"system"`
	// Tiers are all tiers of the engine.
	Tiers []TierStatus `json:"tiers"`
	// Jail is the wall that tier local puts around processes of this host.
	Jail JailStatus `json:"jail"`
}

// TierStatus is one tier on this machine.
type TierStatus struct {
	Name      string           `json:"name"`
	Languages []tiers.Language `json:"languages"`
	Isolation string           `json:"isolation"`
	Features  []tiers.Feature  `json:"features"`
	// Modules is the number of Python modules that snippets can import, 0 if unknown.
	Modules int `json:"modules"`
	// Shown lists the folders and files of this host that snippets can read. Hidden lists folders
	// of modules that snippets cannot read, each with the reason.
	Shown  []string `json:"shown,omitempty"`
	Hidden []string `json:"hidden,omitempty"`
	// Usable reports whether snippets can run in the tier now. If not, Why gives the reason and
	// the remedy.
	Usable bool   `json:"usable"`
	Why    string `json:"why,omitempty"`
	// OnRequest reports that the tier runs snippets only if the policy names or allows it.
	OnRequest bool `json:"on_request,omitempty"`
	// Version names the interpreters and the wall. It is empty if unknown.
	Version string `json:"version,omitempty"`
}

// JailStatus lists the layers with which the kernel can jail a process of this user.
type JailStatus struct {
	// Class is "full", "nested" (weaker: without namespaces) or empty for no jail.
	Class  string      `json:"class"`
	Layers []JailLayer `json:"layers"`
	// Advice explains how to get the missing layers.
	Advice []string `json:"advice,omitempty"`
}

// JailLayer is one layer of a jail.
type JailLayer struct {
	Name      string `json:"name"`
	On        bool   `json:"on"`
	Mechanism string `json:"mechanism,omitempty"`
	Why       string `json:"why,omitempty"`
}

// Diagnose probes every tier. It opens no sandbox.
func (e *Engine) Diagnose(ctx context.Context) Diagnosis {
	d := Diagnosis{System: runtime.GOOS + "/" + runtime.GOARCH}
	for _, tier := range e.tiers {
		status := TierStatus{Usable: true}
		if err := tier.Probe(ctx); err != nil {
			status.Usable, status.Why = false, err.Error()
		}
		info := tier.Info()
		status.Name, status.Languages = info.Name, info.Languages
		if status.Usable {
			status.Version = info.Version
		}
		status.Isolation = info.Isolation.String()
		status.Features, status.Modules = info.Features, len(info.Modules)
		status.OnRequest = info.OnRequest
		status.Shown, status.Hidden = info.Shown, info.Hidden
		d.Tiers = append(d.Tiers, status)
	}

	report := jail.Probe(ctx)
	d.Jail = JailStatus{Class: string(report.Class), Advice: report.Advice}
	for _, layer := range report.Layers {
		d.Jail.Layers = append(d.Jail.Layers, JailLayer(layer))
	}
	return d
}
