//go:build tools

// Package tools names the program that go.mod pins, so that Go's own tools keep it there.
package tools

import _ "github.com/summerwind/h2spec/cmd/h2spec"
