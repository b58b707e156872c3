package ledger

import (
	"testing"
)

// TestVerify: a ledger of several runs and segments, one of them killed, is found
// to be right, and every verdict in it is derived again.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	sample(t, dir, 6)
	got := verify(t, dir)
	for _, f := range got.Findings {
		t.Error(f)
	}
	t.Logf("%+v", *got)
	const visits, refusals = 3 * 6 * 5, 3 * 6
	if got.Requests != visits+1 || got.Answers != visits || got.Interrupted != 1 || got.Refusals != refusals ||
		got.Verdicts != visits+1+refusals || got.Runs != 3 || !got.Closed || got.RobotsFiles != 3 || got.Segments < 3 || got.Unsigned != 0 {
		t.Errorf("found %+v", *got)
	}
}
