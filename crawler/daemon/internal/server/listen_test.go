package server

import (
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
)

func TestListenOptionsChecks(t *testing.T) {
	for _, tt := range []struct {
		door ListenOptions
		says string // part of the error; empty: the options are valid
	}{
		{ListenOptions{addr: "127.0.0.1:8470"}, ""},
		{ListenOptions{addr: "[::1]:0"}, ""},
		{ListenOptions{addr: "localhost:8470"}, ""},
		{ListenOptions{addr: ":8470"}, "--listen: :8470 can be reached from elsewhere"},
		{ListenOptions{addr: "0.0.0.0:8470"}, "--insecure"},
		{ListenOptions{addr: "localhost.example.com:1"}, "can be reached from elsewhere"},
		{ListenOptions{addr: "127.0.0.1"}, `--listen: "127.0.0.1" is not HOST:PORT`},
		{ListenOptions{addr: "::1:8470"}, `--listen: "::1:8470" is not HOST:PORT (IPv6 addresses in brackets)`},
		{ListenOptions{addr: "127.0.0.1:1", allowedHosts: []string{"crawler.example.com", "192.0.2.1"}}, ""},
		{ListenOptions{addr: "127.0.0.1:1", allowedHosts: []string{"a.example", "crawler.example.com:8470"}},
			`--host: "crawler.example.com:8470" is not the name of a host`},
		{ListenOptions{addr: ":8470", allowPlaintext: true}, ""},
		{ListenOptions{addr: ":8470", certFile: "c", keyFile: "k"}, ""},
		{ListenOptions{addr: "127.0.0.1:1", certFile: "c"}, "--tls-cert and --tls-key go together"},
		{ListenOptions{addr: "127.0.0.1:1", keyFile: "k"}, "--tls-cert and --tls-key go together"},
	} {
		err := tt.door.check()
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%+v: %v, want %q", tt.door, err, tt.says)
		}
	}
}

func TestListenAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, _, err = (&ListenOptions{addr: taken.Addr().String()}).openListener(t.Context(), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), taken.Addr().String()+" is in use") {
		t.Errorf("%v", err)
	}
}

// The daemon's tokens are created at the first start, stay the same, and are rejected if other users may
// read them.
func TestTokens(t *testing.T) {
	dir := datadir.StateDir(t.TempDir())
	first, err := loadOrCreateDaemonTokens(dir)
	if err != nil || len(first) != 2 || first[0].Hash == first[1].Hash || !first[0].Role.Allows("operate") ||
		first[1].Role.Allows("operate") {
		t.Fatalf("keys %+v, %v", first, err)
	}
	again, err := loadOrCreateDaemonTokens(dir)
	if err != nil || again[0] != first[0] || again[1] != first[1] {
		t.Errorf("the next time: %+v, %v", again, err)
	}
	for _, tt := range []struct {
		what, says string
		harm       func(file string) error
	}{
		{"a short token", "holds no token of 20 characters", func(f string) error {
			return os.WriteFile(f, []byte("secret"), 0o600)
		}},
		{"a token for all", "others may read the token", func(f string) error { return os.Chmod(f, 0o644) }},
	} {
		if err := tt.harm(dir.Path(TokenFile)); err != nil {
			t.Fatal(err)
		}
		if _, err := loadOrCreateDaemonTokens(dir); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.what, err, tt.says)
		}
	}
}
