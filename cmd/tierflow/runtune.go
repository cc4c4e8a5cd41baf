package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/launch"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/profile"
)

// learnFirst lets a job's ranks tune for the calls of a profile before the program starts. They
// keep a decision table for the job. The first job has no profile yet, and writes one.
func learnFirst(c *cobra.Command, o launch.Options, text string) error {
	if text = cmp.Or(text, os.Getenv(env.Tune)); text == "" {
		return nil
	}
	long, err := time.ParseDuration(text)
	if err != nil || long <= 0 {
		return kit.Usagef("--tune or %s: %q; allowed are durations such as 30s", env.Tune, text)
	}
	file := os.Getenv(env.Profile)
	switch {
	case file == "", file == profile.Summary:
		return kit.Usagef("--tune or %s: no profile says what to tune for; %s=FILE names one, and the first job writes it", env.Tune, env.Profile)
	case o.Hostfile == "-":
		return kit.Usagef("--tune or %s: standard input has the hosts only once; give a file to --hostfile", env.Tune)
	}
	for name, usual := range map[string]string{env.Table: "", env.Machine: planner.MachineAuto} {
		if value := os.Getenv(name); value != "" && value != usual {
			return kit.Usagef("--tune or %s: the job would not use what is learned, since %s says by what it decides; unset one", env.Tune, name)
		}
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(c.ErrOrStderr(), "tierflow: nothing is tuned: %s will be there when this job has ended\n", file)
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o.Program = []string{self, "tune", "--profile", file, "--method", "learn", "--budget", long.String(), "--resume"}
	o.Export = append(o.Export[:len(o.Export):len(o.Export)], env.Profile+"=", env.Tune+"=")
	o.Min, o.Stdin, o.LogDir, o.Timeout = 0, "none", "", 0
	status, err := launch.Run(c.Context(), o, nil, kit.Raw(c.ErrOrStderr()), c.ErrOrStderr())
	if err != nil {
		return kit.WithStatus(fmt.Errorf("tune for %s: %w", file, err), status)
	}
	return nil
}
