package adapt_test

import (
	"testing"

	"github.com/tierflow/tierflow/submodules/internal/adapt"
	"github.com/tierflow/tierflow/submodules/submoduletest"
)

func TestConformance(t *testing.T) {
	submoduletest.Run(t, adapt.Adapt{})
}
