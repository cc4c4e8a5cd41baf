package nbc_test

import (
	"testing"

	"github.com/tierflow/tierflow/submodules/internal/nbc"
	"github.com/tierflow/tierflow/submodules/submoduletest"
)

func TestConformance(t *testing.T) {
	submoduletest.Run(t, nbc.NBC{})
}
