package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
)

// openAPIJSON is the OpenAPI document (3.1) of the routes. openapi_generate_test.go makes it:
//
//	go test ./crawler/daemon/api -run TestOpenAPIDocument -update
//
//go:embed openapi.json
var openAPIJSON []byte

// openAPIVersion is the version that openapi.json has.
const openAPIVersion = "(the program's version)"

// openAPIDocument returns the OpenAPI document of a program of this version.
func openAPIDocument(version string) []byte {
	old, _ := json.Marshal(openAPIVersion)
	v, _ := json.Marshal(version)
	return bytes.Replace(openAPIJSON, old, v, 1)
}
