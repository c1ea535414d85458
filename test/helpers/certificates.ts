/** Certificates for a test: an authority, and what it signs for a server on loopback and for a client. */
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

/** An authority with a certificate for a server and one for a client. */
export interface Certificates {
  readonly ca: Buffer;
  /** The client's. */
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Where the authority's certificate is, and the server's own. */
  readonly files: { readonly ca: string; readonly cert: string; readonly key: string };
  /** Where the client's are. */
  readonly clientFiles: { readonly cert: string; readonly key: string };
}

/** Makes certificates in a folder, with the openssl command. */
export async function makeCertificates(folder: string): Promise<Certificates> {
  const file = (name: string): string => join(folder, name);
  const openssl = (command: string): Promise<unknown> =>
    promisify(execFile)("openssl", command.split(" "), { cwd: folder });
  const newKey = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
  await openssl(`req -x509 ${newKey} -keyout ca.key -out ca.pem -days 2 -subj /CN=authority`);
  const sign = async (name: string, extensions: string): Promise<void> => {
    await writeFile(file(`${name}.ext`), extensions);
    await openssl(`req ${newKey} -keyout ${name}.key -out ${name}.csr -subj /CN=${name}`);
    const authority = "-CA ca.pem -CAkey ca.key -CAcreateserial";
    await openssl(`x509 -req -in ${name}.csr ${authority} -out ${name}.pem -days 2 -extfile ${name}.ext`);
  };
  // For clients, too: etcd's own gateway is a client of the server, with the same certificate.
  await sign("server", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n");
  await sign("client", "extendedKeyUsage=clientAuth\n");
  return {
    ca: await readFile(file("ca.pem")),
    cert: await readFile(file("client.pem")),
    key: await readFile(file("client.key")),
    files: { ca: file("ca.pem"), cert: file("server.pem"), key: file("server.key") },
    clientFiles: { cert: file("client.pem"), key: file("client.key") },
  };
}
