package kit

import (
	"testing"

	"github.com/spf13/cobra"
)

// Mistakes with flags are answered with what was probably meant.
func TestFlagErrors(t *testing.T) {
	for _, mistake := range []struct{ given, want string }{
		{"--type", "unknown flag --type; did you mean --dtype?"},
		{"--op", "unknown flag --op; did you mean --reduce-op?"},
		{"-bytes", "unknown flag -bytes; did you mean --bytes?"},
		{"--byte=4", "unknown flag --byte; did you mean --bytes?"},
		{"--n", "unknown flag --n; did you mean --ranks?"},
		{"--xyzzy", "unknown flag --xyzzy; --help lists all"},
		{"-np", `-n, --ranks: "p" is no whole number`},
		{"--ranks=two", `-n, --ranks: "two" is no whole number`},
		{"--timeout=5", `--timeout: "5" is no time with a unit, such as 500ms, 5s, 3m or 1h30m`},
	} {
		c := &cobra.Command{Run: func(*cobra.Command, []string) {}}
		c.SetFlagErrorFunc(flagError)
		c.SilenceErrors, c.SilenceUsage = true, true
		f := c.Flags()
		f.IntP("ranks", "n", 0, "")
		f.Duration("timeout", 0, "")
		for _, name := range []string{"bytes", "dtype", "reduce-op"} {
			f.String(name, "", "")
		}
		c.SetArgs([]string{mistake.given})
		if err := c.Execute(); err == nil || err.Error() != mistake.want {
			t.Errorf("%s: %v; want %s", mistake.given, err, mistake.want)
		}
	}
}
