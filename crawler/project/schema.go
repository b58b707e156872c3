package project

import _ "embed"

// JSONSchema is the JSON Schema (draft 7) of project files, for editors. TestProjectSchema writes it
// from the fields of Project, their comments, and the tables in field_constraints.go.
//
//go:embed schema.json
var JSONSchema string
