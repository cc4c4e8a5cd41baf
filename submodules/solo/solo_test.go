package solo_test

import (
	"testing"

	"github.com/tierflow/tierflow/submodules/solo"
	"github.com/tierflow/tierflow/submodules/submoduletest"
)

func TestConformance(t *testing.T) { submoduletest.Run(t, solo.Solo{}) }
