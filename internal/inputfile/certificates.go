package inputfile

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
)

// AddCertificates adds the certificates in a PEM file to pool. A file that holds no certificate, a damaged
// one, or a private key is an error; the pool may have some of the certificates then.
func AddCertificates(open OpenFunc, name string, pool *x509.CertPool) error {
	text, err := ReadSmall(open, name)
	if err != nil {
		return err
	}
	read := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "CERTIFICATE":
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return fmt.Errorf("%s: certificate %d: %w", name, read+1, err)
			}
			pool.AddCert(certificate)
			read++
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return fmt.Errorf("%s holds a private key; expected certificates only", name)
		}
	}
	if read == 0 {
		return fmt.Errorf("%s holds no certificate; expected a file in the format PEM", name)
	}
	return nil
}
