//go:build soak

package model_test

import "testing"

// TestSoak_Sessions plays 100,000 turns.
func TestSoak_Sessions(t *testing.T) { playSessions(t, 5000, 20) }
