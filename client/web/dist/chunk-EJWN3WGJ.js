import{c as o}from"./chunk-XD3TUXMR.js";var t=o(null);export{t as a};
