//go:build soak

package agent

import "testing"

func TestSoak_RandomFaultsKeepHistoryValid(t *testing.T) { playRandomly(t, 30_000) }
