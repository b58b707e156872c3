package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// TestLostOutput checks that a command whose output was lost prints the write error once, unless it
// ends with a usage error, whichever error it returns itself.
func TestLostOutput(t *testing.T) {
	for _, tt := range []struct {
		end  error
		code int
		says string
	}{
		{nil, ExitFailed, "decorum: disk full\n"},
		{&ExitError{Code: ExitCheckFailed}, ExitFailed, "decorum: disk full\n"},
		{errors.New("lightning"), ExitFailed, "decorum: lightning\ndisk full\n"},
		{usage.Errorf("no such host"), ExitUsage, "decorum: no such host\n"},
	} {
		p := terminal.NewStickyErrorWriter(fullDisk{})
		if _, err := p.Write([]byte("x")); err == nil {
			t.Fatal("the write succeeded")
		}
		var wantText strings.Builder
		if code := PrintError(&wantText, WithWriteError(p, tt.end)); code != tt.code || wantText.String() != tt.says {
			t.Errorf("%v: exit code %d and %q, want %d and %q", tt.end, code, wantText.String(), tt.code, tt.says)
		}
	}
}

// fullDisk fails every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }
