package planner

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels/files"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/tasks"
)

// settings are a program's options, completed by its environment. Nothing else in this package asks the environment for
// an option. To add one: a field of [Options], a row of texts if the environment can give it, a field of common if rank 0's
// counts for all ranks.
type settings struct {
	Options
	origin map[string]string // by option: what has given its text, Options.Plan or TIERFLOW_PLAN
}

// common are the settings that are rank 0's on all ranks. They are sent whole, as JSON, and kept whole by
// each communicator.
type common struct {
	Plan       string `json:"plan"`
	PlanOrigin string `json:"plan_origin"`
	Links      string `json:"links"`   // see [Options.Links]
	Tries      bool   `json:"tries"`   // see [Options.Effort]
	Uniform    bool   `json:"uniform"` // see [Options.Uniform]
	Managed    bool   `json:"managed"` // see [Options.Managed]
}

// texts are the options that the environment gives if the program doesn't.
var texts = []struct {
	option, variable string
	of               func(o *Options) *string
}{
	{"Plan", env.Plan, func(o *Options) *string { return &o.Plan }},
	{"Rules", env.Rules, func(o *Options) *string { return &o.Rules }},
	{"Table", env.Table, func(o *Options) *string { return &o.Table }},
	{"Machine", env.Machine, func(o *Options) *string { return &o.Machine }},
	{"Effort", env.Effort, func(o *Options) *string { return &o.Effort }},
	{"Links", env.Links, func(o *Options) *string { return &o.Links }},
	{"Recorder", env.Recorder, func(o *Options) *string { return &o.Recorder }},
	{"DumpDir", env.DumpDir, func(o *Options) *string { return &o.DumpDir }},
	{"Trace", env.Trace, func(o *Options) *string { return &o.Trace }},
	{"Profile", env.Profile, func(o *Options) *string { return &o.Profile }},
	{"Congestion", env.Congestion, func(o *Options) *string { return &o.Congestion }},
}

// settings reads the environment. What it says is judged where it is used: a setting that is rank 0's is an error
// on rank 0 only.
func (o *Options) settings() *settings {
	s := &settings{origin: map[string]string{}}
	if o != nil {
		s.Options = *o
	}
	for _, t := range texts {
		text := t.of(&s.Options)
		s.origin[t.option] = "Options." + t.option
		if *text == "" {
			*text, s.origin[t.option] = os.Getenv(t.variable), t.variable
		}
	}
	return s
}

// read reads a file that an option names, or its variable.
func (o *settings) read(option, name string, most int64) ([]byte, error) {
	fsys := o.Files
	if o.origin[option] != "Options."+option {
		fsys = nil
	}
	data, err := files.ReadIn(fsys, name, most)
	switch {
	case errors.Is(err, fs.ErrNotExist) && fsys != nil:
		return nil, fmt.Errorf("%s: %w, neither in Options.Files nor in the file system", o.origin[option], err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", o.origin[option], err)
	}
	return data, nil
}

// common returns the settings that count on all ranks, if this is rank 0 or the ranks are goroutines.
func (o *settings) common() (c common, err error) {
	c = common{Plan: o.Plan, PlanOrigin: o.origin["Plan"], Links: o.Links, Uniform: o.Uniform}
	switch order := (tasks.Plan{Order: tasks.TreeOrder}).String(); {
	case !o.Deterministic:
	case c.Plan == "":
		c.Plan, c.PlanOrigin = order, "Options.Deterministic"
	default:
		c.Plan, c.PlanOrigin = order+";"+c.Plan, "Options.Deterministic and "+c.PlanOrigin
	}
	managed, err := readSwitch(env.Managed)
	if c.Managed = managed == "1" || o.Managed; err == nil {
		c.Tries, err = o.tries()
	}
	return c, err
}

// tries reports whether [EffortMeasure] is asked for.
func (o *settings) tries() (bool, error) {
	switch o.Effort {
	case "", EffortEstimate:
		return false, nil
	case EffortMeasure:
		return true, nil
	}
	return false, fmt.Errorf("%s: %q; allowed are %s and %s", o.origin["Effort"], o.Effort, EffortEstimate, EffortMeasure)
}

// config returns the settings of an engine.
func (o *settings) config() (executor.Config, error) {
	limit, err := o.callTimeout()
	c := executor.Config{
		StallAfter: o.StallAfter, CloseTimeout: o.CloseTimeout, CallTimeout: limit, Log: o.Log, Hooks: o.Hooks, Progress: o.seams.Progress, Elsewhere: o.seams.Elsewhere,
	}
	if c.Log == nil {
		c.Stalls = slog.Default() // nobody else says why a job, or a test, stands still
	}
	return c, err
}

// processConfig is config for processes, of a job that is managed or not.
func (o *settings) processConfig(managed bool) (proc.Config, error) {
	config, err := o.config()
	return proc.Config{Config: config, NoPeerReads: o.seams.NoPeerReads, Spread: managed, Congestion: o.Congestion}, err
}

// callTimeout returns the limit for calls; 0: none.
func (o *settings) callTimeout() (time.Duration, error) {
	text := os.Getenv(env.CallTimeout)
	if o.CallTimeout != 0 || text == "" {
		return max(0, o.CallTimeout), nil
	}
	limit, err := time.ParseDuration(text)
	if err != nil || limit < 0 {
		return 0, fmt.Errorf("%s=%q; allowed are durations such as 30s or 5m, and 0 for none", env.CallTimeout, text)
	}
	return limit, nil
}

// dumps reports whether a rank's wait is printed after SIGQUIT, and whether the process goes on then.
func (o *settings) dumps(managed bool) (prints, goesOn bool, err error) {
	v, err := readSwitch(env.Dump)
	goesOn = v == "1" || o.DumpOnQuit
	return goesOn || managed && v != "0", goesOn, err
}

// readSwitch returns a variable's value: 0, 1, or empty if nobody has set it.
func readSwitch(variable string) (v string, err error) {
	if v = os.Getenv(variable); v != "" && v != "0" && v != "1" {
		err = fmt.Errorf("%s=%q; allowed are 0 and 1", variable, v)
	}
	return v, err
}

// logger returns Log, or else slog.Default(), for warnings that must not get lost.
func (o *Options) logger() *slog.Logger {
	if o == nil || o.Log == nil {
		return slog.Default()
	}
	return o.Log
}
