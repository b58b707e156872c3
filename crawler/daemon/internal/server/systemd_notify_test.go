package server

import (
	"path/filepath"
	"testing"
)

// Who is not started by a service manager tells nobody.
func TestNotifyNobody(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := NotifySystemd("READY=1"); err != nil {
		t.Error(err)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	if err := NotifySystemd("READY=1"); err == nil {
		t.Error("a socket that nobody listens at takes a word")
	}
}
