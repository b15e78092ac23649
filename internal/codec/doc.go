// Package codec turns keys and hot records into bytes and back.
//
// Owns: the order-preserving forms of key parts, and the compact reader and
// writer for records that are written too often for CBOR.
//
// May: be used by every package that stores something.
//
// May not: know any table; read a clock; allocate on the append paths.
//
// Start reading at: key.go, then record.go.
package codec
