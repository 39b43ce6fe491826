//go:build soak

package capability

import "testing"

// TestSoak_Kills kills a thousand processes at work.
func TestSoak_Kills(t *testing.T) {
	f := fleet{opts: quickOptions(t)}
	for f.kills < 1000 {
		f.run(t, 104)
		if t.Failed() {
			return
		}
	}
}

// TestSoak_KilledAtEveryCall is [TestCrash_KilledAtEveryCall] without a gap.
func TestSoak_KilledAtEveryCall(t *testing.T) {
	for _, c := range crashes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			killAtCalls(t, c, 0, 1)
		})
	}
}
