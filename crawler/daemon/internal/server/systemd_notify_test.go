package server

import (
	"path/filepath"
	"testing"
)

// A process that no service manager has started sends no notification, and returns no error.
func TestNotifyNobody(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := NotifySystemd("READY=1"); err != nil {
		t.Error(err)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	if err := NotifySystemd("READY=1"); err == nil {
		t.Error("a notification to a missing socket causes no error")
	}
}
