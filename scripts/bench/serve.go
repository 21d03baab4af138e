package main

var servedRunRows = []goRow{
	{
		"BenchmarkServedRuns", "ideal",
		"100 runs at once over HTTP, each with 22 model calls of 50 ms, one after the other", "%.2f x the ideal time",
		1.1, 0,
	},
	{
		"BenchmarkWatchers", "events/s", "500 watchers of one run: events that reach them, none lost", "%.0f events/s",
		0, 0,
	},
}

// servedRuns has the runs of a server measured.
func (b *bench) servedRuns() error { return b.measureGo(servedRunRows, "./internal/serve/server") }
