package circulant_test

import (
	"testing"

	"github.com/tierflow/tierflow/submodules/internal/circulant"
	"github.com/tierflow/tierflow/submodules/submoduletest"
)

func TestConformance(t *testing.T) {
	submoduletest.Run(t, circulant.Circulant{})
}
