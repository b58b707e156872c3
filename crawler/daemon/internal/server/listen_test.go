package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
)

func TestListenOptionsChecks(t *testing.T) {
	for _, tt := range []struct {
		door ListenOptions
		says string // empty: it is fine
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
		{ListenOptions{addr: "127.0.0.1:1", allowedHosts: []string{"a.example", "crawler.example.com:8470"}}, `--host: "crawler.example.com:8470" is not the name of a host`},
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

// writeCertificate writes a certificate for a serial number, and its key.
func writeCertificate(t *testing.T, d *ListenOptions, serial int64, changed time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{d.certFile: {Type: "CERTIFICATE", Bytes: cert}, d.keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(d.certFile, changed, changed); err != nil {
		t.Fatal(err)
	}
}

// A certificate that is renewed is served without a restart; while it is half
// replaced, the one before is.
func TestCertificateRenewal(t *testing.T) {
	dir := t.TempDir()
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	d := &ListenOptions{addr: "127.0.0.1:0", certFile: filepath.Join(dir, "cert.pem"), keyFile: filepath.Join(dir, "key.pem")}
	if _, _, err := d.openListener(t.Context(), log); err == nil || !strings.Contains(err.Error(), "cert.pem") {
		t.Errorf("without a certificate: %v", err)
	}
	begin := time.Now().Add(-time.Hour)
	writeCertificate(t, d, 1, begin)
	l, tlsConfig, err := d.openListener(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	l = tls.NewListener(l, tlsConfig)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).Handshake()
			c.Close()
		}
	}()
	serial := func() int64 {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Errorf("certificate %d is served", got)
	}
	if err := os.WriteFile(d.keyFile, []byte("half a ke"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(d.certFile, begin.Add(time.Minute), begin.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := serial(); got != 1 {
			t.Errorf("half a renewal: certificate %d is served", got)
		}
	}
	if n := strings.Count(said.String(), "cannot be read"); n != 1 {
		t.Errorf("of half a renewal it says, not once: %q", &said)
	}
	writeCertificate(t, d, 2, begin.Add(2*time.Minute))
	if got := serial(); got != 2 {
		t.Errorf("after the renewal: certificate %d is served", got)
	}
}

// Tokens are made at the first start, stay, and are nobody else's to read.
func TestTokens(t *testing.T) {
	dir := datadir.StateDir(t.TempDir())
	first, err := loadOrCreateDaemonTokens(dir)
	if err != nil || len(first) != 2 || first[0].Hash == first[1].Hash || !first[0].Role.Allows("operate") || first[1].Role.Allows("operate") {
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
		{"a short token", "holds no token of 20 characters", func(f string) error { return os.WriteFile(f, []byte("secret"), 0o600) }},
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
