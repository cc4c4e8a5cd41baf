package sm_test

import (
	"testing"

	"github.com/tierflow/tierflow/submodules/internal/sm"
	"github.com/tierflow/tierflow/submodules/submoduletest"
)

func TestConformance(t *testing.T) {
	submoduletest.Run(t, sm.SM{})
}
