package planner

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/tierflow/tierflow/executor/proc"
)

// The environment variables beside [PlanVariable].
const (
	RecorderVariable = "TIERFLOW_RECORDER" // see [Options.Recorder]
	DumpVariable     = "TIERFLOW_DUMP"     // 1: see [Options.DumpOnQuit]
)

// observe starts what the options or the environment ask for to see what the
// world's ranks do.
func (o *Options) observe(w *world) error {
	path, origin := o.Recorder, "Options.Recorder"
	if path == "" {
		path, origin = os.Getenv(RecorderVariable), RecorderVariable
	}
	if path != "" {
		if err := w.Record(path); err != nil {
			return fmt.Errorf("%s: %w", origin, err)
		}
	}
	switch v := os.Getenv(DumpVariable); {
	case v != "" && v != "0" && v != "1":
		return fmt.Errorf("%s=%q; allowed are 0 and 1", DumpVariable, v)
	case v == "1" || o.DumpOnQuit:
		w.quiet = w.DumpOnQuit(os.Stderr)
	}
	return nil
}

// processConfig is config for ranks that are processes.
func (o *Options) processConfig() proc.Config {
	c := proc.Config{Config: o.config(), NoPeerReads: o.NoPeerReads, NoSpread: o.NoSpread, Congestion: o.congestion()}
	if c.Log == nil {
		c.Stalls = slog.Default()
	}
	return c
}
