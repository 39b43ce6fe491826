import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PhotonImage, resize, SamplingFilter } from "npm:@cf-wasm/photon@0.1.31/node";

/** Resizes a PNG, JPEG or WebP image and writes it as PNG. */
export default async function () {
  const image = PhotonImage.new_from_byteslice(await readFile(join(__workspace, args.file)));
  const scale = Math.min(args.maxWidth / image.get_width(), (args.maxHeight ?? Infinity) / image.get_height(), 1);
  const width = Math.max(1, Math.round(image.get_width() * scale));
  const height = Math.max(1, Math.round(image.get_height() * scale));
  const small = resize(image, width, height, SamplingFilter.Lanczos3);
  await writeFile(join(__workspace, args.output), small.get_bytes());
  return { from: [image.get_width(), image.get_height()], to: [width, height], file: args.output };
}
