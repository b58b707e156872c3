package daemon

import (
	"errors"
	"strings"
	"testing"
)

// TestLostOutput: where output was lost that is told, once and in one line, whatever a
// command that did not look after its output ended with.
func TestLostOutput(t *testing.T) {
	for _, tt := range []struct {
		end  error
		code int
		says string
	}{
		{nil, ExitFailed, "decorum: disk full\n"},
		{&exit{code: ExitNo}, ExitFailed, "decorum: disk full\n"},
		{errors.New("lightning"), ExitFailed, "decorum: lightning\ndisk full\n"},
		{usage("no such host"), ExitUsage, "decorum: no such host\n"},
	} {
		p := newPrinter(fullDisk{})
		if _, err := p.Write([]byte("x")); err == nil {
			t.Fatal("it was written")
		}
		var said strings.Builder
		if code := report(&said, p.heeded(tt.end)); code != tt.code || said.String() != tt.says {
			t.Errorf("%v: exit code %d and %q, want %d and %q", tt.end, code, said.String(), tt.code, tt.says)
		}
	}
}
