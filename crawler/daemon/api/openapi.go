package api

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
)

// openAPIDocument returns the OpenAPI document (3.1) of routes.
func openAPIDocument(routes []route, version string) []byte {
	s := &schemaBuilder{components: map[string]schema{}, docComments: loadDocComments()}
	paths := map[string]schema{}
	for _, rt := range routes {
		if paths[rt.path] == nil {
			paths[rt.path] = schema{}
		}
		paths[rt.path][strings.ToLower(rt.method)] = s.operation(&rt)
	}
	s.schemaOf(reflect.TypeFor[Problem]())
	text, err := json.MarshalIndent(schema{
		"openapi": "3.1.0",
		"info": schema{"title": "decorum", "version": version, "license": schema{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "The API of a decorum daemon, a polite web crawler. Errors are problem details (RFC 9457). " +
				"Times are RFC 3339; what ends in _ms is in milliseconds."},
		"security": []schema{{"token": []string{}}, {"session": []string{}}},
		"paths":    paths,
		"components": schema{
			"schemas": s.components,
			"responses": schema{"Problem": schema{"description": "Why not",
				"content": mediaTypeContent("application/problem+json", schema{"$ref": componentRefPrefix + "Problem"})}},
			"parameters": schema{"Reason": schema{"name": reasonHeader, "in": "header", "description": "why, for the audit", "schema": schema{"type": "string"}}},
			"securitySchemes": schema{
				"token":   schema{"type": "http", "scheme": "bearer", "description": "of the file token or token-read in the daemon's data directory"},
				"session": schema{"type": "apiKey", "in": "cookie", "name": sessionCookieName},
			},
		},
	}, "", " ")
	if err != nil {
		panic(err) // it is made of strings and maps
	}
	return text
}

func mediaTypeContent(contentType string, s schema) schema {
	return schema{contentType: schema{"schema": s}}
}

// operation describes a route.
func (s *schemaBuilder) operation(rt *route) schema {
	op := schema{
		"operationId": rt.operationID, "summary": rt.summary,
		"responses": schema{rt.successStatus(): s.responseSchema(rt), "default": schema{"$ref": "#/components/responses/Problem"}},
	}
	description := rt.description
	if rt.role == RolePublic {
		op["security"] = []schema{}
	} else {
		description = strings.TrimSpace("Needs the role " + string(rt.role) + ". " + description)
		op["x-decorum-role"] = rt.role
	}
	if description != "" {
		op["description"] = description
	}
	if p := s.parameters(rt); len(p) > 0 {
		op["parameters"] = p
	}
	if body := s.requestBody(rt); body != nil {
		op["requestBody"] = body
	}
	responses := op["responses"].(schema)
	if rt.mayCreate {
		responses["201"] = schema{"description": "Made", "headers": schema{"Location": schema{"schema": schema{"type": "string"}}}}
	}
	return op
}

// successStatus returns the status of an answer that is none of failure.
func (rt *route) successStatus() string {
	if rt.responseBodyPrototype == nil {
		return "204"
	}
	return "200"
}

// responseSchema describes what a route gives.
func (s *schemaBuilder) responseSchema(rt *route) schema {
	if rt.responseBodyPrototype == nil {
		return schema{"description": "Done"}
	}
	contentType := rt.responseMediaType
	if contentType == "" {
		contentType = "application/json"
	}
	a := schema{"description": rt.summary, "content": mediaTypeContent(contentType, s.schemaOf(reflect.TypeOf(rt.responseBodyPrototype)))}
	if _, ok := rt.responseBodyPrototype.(Project); ok && rt.method == "GET" {
		a["content"].(schema)["application/yaml"] = schema{"schema": schema{"type": "string"}}
	}
	return a
}

var pathParamPattern = regexp.MustCompile(`{(\w+)}`)

// parameters describes what stands in the path and the query, and the reason.
func (s *schemaBuilder) parameters(rt *route) []schema {
	var all []schema
	for _, m := range pathParamPattern.FindAllStringSubmatch(rt.path, -1) {
		all = append(all, schema{"name": m[1], "in": "path", "required": true, "schema": schema{"type": "string"}})
	}
	for _, p := range rt.params {
		paramSchema := schema{"type": p.jsonType}
		if p.enum != nil {
			paramSchema["enum"] = p.enum
		}
		all = append(all, schema{"name": p.name, "in": "query", "description": p.description, "schema": paramSchema})
	}
	if isUnsafeMethod(rt.method) && rt.role == RoleOperate {
		all = append(all, schema{"$ref": "#/components/parameters/Reason"})
	}
	return all
}

// requestBody describes what a route takes.
func (s *schemaBuilder) requestBody(rt *route) schema {
	if len(rt.requestMediaTypes) == 0 {
		return nil
	}
	bodySchema := schema{"type": "string"}
	if rt.requestBodyPrototype != nil {
		bodySchema = s.schemaOf(reflect.TypeOf(rt.requestBodyPrototype))
	}
	contents := schema{}
	for _, t := range rt.requestMediaTypes {
		contents[t] = schema{"schema": bodySchema}
		if rt.requestBodyPrototype == nil && t == "application/json" {
			contents[t] = schema{"schema": schema{"type": "array"}}
		}
		if t == formTypes[0] {
			contents[t] = schema{"schema": schema{"type": "object", "properties": schema{"token": bodySchema, "next": bodySchema}}}
		}
	}
	return schema{"content": contents}
}
