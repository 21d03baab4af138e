package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/testing/corpus"
)

// form is a text made of parts: a beginning, a middle that repeats as often as it fits, and an
// end, with padding spaces before the end.
type form struct{ begin, middle, end string }

var forms = map[string]form{
	"ascii": {
		middle: strings.Repeat("The reading room closes at 18:30. ", 20) + "An ERROR is E-7.\n",
		end:    "\n",
	},
	"json":   {"[{\"n\": 0}", ",\n {\"n\": 1, \"of\": \"many\"}", "]\n"},
	"jsonl":  {middle: "{\"n\": 1, \"of\": \"many\"}\n", end: "\n"},
	"csv":    {"id,name,city\n", "7,Ada,London\n", "\n"},
	"xml":    {"<?xml version=\"1.0\"?>\n<list>\n", "<item>7</item>\n", "</list>\n"},
	"html":   {"<!DOCTYPE html>\n<html><body>\n", "<p>Seven.</p>\n", "</body></html>\n"},
	"code":   {"#!/bin/sh\n", "echo seven\n", "\n"},
	"binary": {"\x7fELF", "\x00\x01\x02\x03\xff", "\x00"},
}

// invalidAt are the offsets of the bytes that are not valid UTF-8 in a file of the kind "invalid".
// The last byte of such a file is also invalid.
var invalidAt = []int{10, 11, 5000}

// mktext is the command `mktext -bytes N -kind KIND FILE`. It writes a file of exactly N bytes;
// KIND is forms, mixed (a text in many scripts) or invalid (ASCII except for four bytes).
func mktext() {
	flags := flag.NewFlagSet("mktext", flag.ExitOnError)
	size := flags.Int("bytes", 0, "how long the file is")
	kind := flags.String("kind", "ascii", "what is in it")
	_ = flags.Parse(os.Args[1:]) // exits on an error
	if flags.NArg() != 1 {
		log.Fatal("usage: mktext -bytes N -kind KIND FILE")
	}
	text, err := content(*kind, *size)
	if err != nil {
		log.Fatalf("mktext: %v", err)
	}
	if err := os.WriteFile(flags.Arg(0), text, 0o600); err != nil {
		log.Fatalf("mktext: %v", err)
	}
}

// content returns a text of one of mktext's kinds.
func content(kind string, size int) ([]byte, error) {
	switch kind {
	case "mixed":
		var b bytes.Buffer
		err := corpus.Write(&b, int64(size), 1, nil)
		return b.Bytes(), err
	case "invalid":
		text, err := content("ascii", size)
		if err != nil {
			return nil, err
		}
		for _, at := range append(slices.Clone(invalidAt), size-1) {
			text[at] = 0xff
		}
		return text, nil
	}
	f, known := forms[kind]
	if !known {
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
	room := size - len(f.begin) - len(f.end)
	if room < 0 {
		return nil, fmt.Errorf("%d bytes are too few for %s", size, kind)
	}
	times := room / len(f.middle)
	fill := strings.Repeat(" ", room-times*len(f.middle))
	return []byte(f.begin + strings.Repeat(f.middle, times) + fill + f.end), nil
}
