package costs_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs"
)

// Every regime's name is read as that regime, and no other word is.
func TestRegime(t *testing.T) {
	for _, r := range costs.Regimes() {
		text, err := r.MarshalText()
		var again costs.Regime
		if err == nil {
			err = again.UnmarshalText(text)
		}
		if err != nil || again != r || r.String() == "invalid" {
			t.Errorf("%d is %q, which is read as %v, %v", r, text, again, err)
		}
	}
	again := costs.Single
	if err := again.UnmarshalText([]byte("twice")); err == nil || again != 0 || !strings.Contains(err.Error(), `"twice"`) || !strings.Contains(err.Error(), "single, back-to-back") {
		t.Errorf("read as %v, %v", again, err)
	}
	if s := costs.Regime(len(costs.Regimes()) + 1).String(); s != "invalid" {
		t.Errorf("a regime that isn't listed is %q", s)
	}
}
