package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// newCertificate returns a certificate for template's names, and its key. It is signed by parent, or by itself
// if parent is nil.
func newCertificate(t *testing.T, template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (
	*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// startIntranet starts an https server of the host wiki.intranet.example, and returns it and the certificate
// (PEM) of its private authority.
func startIntranet(t *testing.T) (s *httptest.Server, authorityPEM []byte) {
	t.Helper()
	authority, authorityKey := newCertificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "Intranet CA"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	leaf, leafKey := newCertificate(t, &x509.Certificate{DNSNames: []string{"wiki.intranet.example"}}, authority,
		authorityKey)
	s = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "the wiki")
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: leafKey}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})
}

// TestCAFile checks that a crawl trusts the authority in fetch.ca_file, whose path is relative to the project
// file, and that without it the server is not trusted.
func TestCAFile(t *testing.T) {
	t.Parallel()
	s, authority := startIntranet(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), authority, 0o600); err != nil {
		t.Fatal(err)
	}
	newProject := func(fields string) string {
		file := filepath.Join(dir, "p.yaml")
		text := "agent: {contact: 'mailto:bot@example.com'}\nseeds: ['https://wiki.intranet.example/']\n" +
			"politeness: {delay: 0s}\ndiscover: {sitemaps: false}\n" +
			"fetch: {connect_to: [':443:" + s.Listener.Addr().String() + "'], allow_private: true" + fields + "}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	data := filepath.Join(dir, "data")
	crawl := func(file string, args ...string) commandResult {
		args = append([]string{"crawl", "-c", file, "--data", data, "--fresh", "--progress=none"}, args...)
		return runCommand(t, args...)
	}
	crawl(newProject(", ca_file: ca.pem")).want(t, command.ExitDone, "pages: 1 (")
	if r := crawl(newProject(""), "--max-time=2s"); !strings.Contains(r.stderr, "from an unknown authority") {
		t.Errorf("without ca_file the crawl does not say that the certificate is not trusted:\n%s", r.stderr)
	}
	for name, text := range map[string]string{
		"holds no certificate": "nonsense",
		"holds a private key":  "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
		"certificate 1":        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		file := testfile.Write(t, "bad.pem", text)
		crawl(newProject(", ca_file: "+file)).want(t, command.ExitUsage, "fetch.ca_file: "+file, name)
	}
	crawl(newProject(", ca_file: absent.pem")).want(t, command.ExitUsage, "fetch.ca_file: ",
		filepath.Join(dir, "absent.pem"))
}
